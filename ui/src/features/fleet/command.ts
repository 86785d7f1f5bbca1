// A server and a secret in, what a person types on the device out. The secret travels in a file, not on a command line.
export function buildCommand(server: string, secret: string | null): string {
  if (secret === null) return `prony agent start --server ${server}`;
  return [
    "(umask 077; cat > enrol.token) <<'END'",
    secret,
    "END",
    `prony agent start --server ${server} --token-file enrol.token`,
  ].join("\n");
}
