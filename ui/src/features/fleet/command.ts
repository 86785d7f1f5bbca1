// The command that enrols an agent. The secret goes into a file and not on the command line.
export function buildCommand(server: string, secret: string | null): string {
  if (secret === null) return `prony agent start --server ${server}`;
  return [
    "(umask 077; cat > enrol.token) <<'END'",
    secret,
    "END",
    `prony agent start --server ${server} --token-file enrol.token`,
  ].join("\n");
}
