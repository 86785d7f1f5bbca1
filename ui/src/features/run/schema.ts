// Looks up the keys, values and descriptions that the recipe's JSON Schema allows at a path.
export interface SchemaNode {
  $ref?: string;
  $defs?: Record<string, SchemaNode>;
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  examples?: unknown[];
  properties?: Record<string, SchemaNode>;
  required?: string[];
  anyOf?: SchemaNode[];
  oneOf?: SchemaNode[];
  items?: SchemaNode;
  additionalProperties?: SchemaNode | boolean;
  patternProperties?: Record<string, SchemaNode>;
  propertyNames?: { anyOf?: { enum?: string[] }[] };
}

export interface Suggestion {
  name: string;
  about: string;
  detail: string;
}

/** Return every shape that a node may have: references followed, alternatives side by side. */
export function expandShapes(root: SchemaNode, node: SchemaNode | undefined): SchemaNode[] {
  if (!node) return [];
  if (node.$ref) {
    const target = root.$defs?.[node.$ref.split("/").at(-1) ?? ""];
    return target
      ? expandShapes(root, { ...target, ...(node.description ? { description: node.description } : {}) })
      : [];
  }
  const ways = node.anyOf ?? node.oneOf;
  return ways ? ways.flatMap((way) => expandShapes(root, way)) : [node];
}

/** Return the nodes that a path leads to; of alternatives, those of the `kind` that is written are meant. */
export function findNodes(root: SchemaNode, path: readonly string[], kind: string | null = null): SchemaNode[] {
  let found = [root];
  for (const key of path) {
    const inner = found.flatMap((node) => [node.properties?.[key], ...findPatternNodes(node, key)]);
    found = inner.flatMap((node) => expandShapes(root, node));
    const ofKind = found.filter((node) => node.properties?.["kind"]?.const === kind);
    if (ofKind.length > 0) found = ofKind;
  }
  return found;
}

function findPatternNodes(node: SchemaNode, key: string): (SchemaNode | undefined)[] {
  const fits = Object.entries(node.patternProperties ?? {}).filter(([pattern]) => new RegExp(pattern).test(key));
  if (fits.length > 0) return fits.map(([, inner]) => inner);
  if (node.properties && key in node.properties) return [];
  return typeof node.additionalProperties === "object" ? [node.additionalProperties] : [];
}

/** The keys that may stand under a path. */
export function listKeys(root: SchemaNode, path: readonly string[], kind: string | null = null): Suggestion[] {
  const found = new Map<string, Suggestion>();
  for (const node of findNodes(root, path, kind)) {
    for (const [name, inner] of Object.entries(node.properties ?? {}))
      if (name !== "$schema" && !found.has(name))
        found.set(name, { name, about: nodeDescription(root, inner), detail: describeType(root, inner) });
    for (const name of node.propertyNames?.anyOf?.flatMap((one) => one.enum ?? []) ?? [])
      if (!found.has(name)) found.set(name, { name, about: "", detail: "fact" });
  }
  return [...found.values()];
}

/** The values that a key may have, as far as they are known. */
export function listValues(
  root: SchemaNode,
  path: readonly string[],
  key: string,
  kind: string | null = null,
): Suggestion[] {
  const nodes = findNodes(root, [...path, key], kind);
  const plain = nodes.flatMap((node) => [
    ...(node.const === undefined ? [] : [node.const]),
    ...(node.enum ?? []),
    ...(node.type === "boolean" ? [true, false] : []),
    ...(node.examples ?? []),
  ]);
  return [...new Set(plain.map(String))].map((name) => ({ name, about: "", detail: "" }));
}

/** What a key means, in words. */
export function findHelp(root: SchemaNode, path: readonly string[], kind: string | null = null): Suggestion | null {
  const name = path.at(-1);
  if (name === undefined) return null;
  const known = listKeys(root, path.slice(0, -1), kind).find((one) => one.name === name);
  if (known) return known;
  const node = findNodes(root, path, kind)[0];
  return node?.description ? { name, about: node.description, detail: "" } : null;
}

function nodeDescription(root: SchemaNode, node: SchemaNode): string {
  return node.description ?? expandShapes(root, node)[0]?.description ?? "";
}

function describeType(root: SchemaNode, node: SchemaNode): string {
  const types = [
    ...new Set(
      expandShapes(root, node)
        .map((one) => one.type ?? (one.enum || one.const ? "word" : ""))
        .filter((type) => type && type !== "null"),
    ),
  ];
  const standing =
    node.default === undefined || node.default === null || typeof node.default === "object"
      ? ""
      : `default ${JSON.stringify(node.default)}`;
  return [types.join(" or "), standing].filter(Boolean).join(", ");
}
