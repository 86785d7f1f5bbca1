// Lint rules of the web pages: imports only go down the layers, features do not import features, nothing is `any`.
import { readdirSync } from "node:fs";

import importX, { createNodeResolver } from "eslint-plugin-import-x";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

const features = readdirSync(new URL("./src/features", import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

// What stands below may not import what stands above: app > features > charts > components > api.
const zones = [
  { target: "./src/features", from: "./src/app", message: "features do not know the application" },
  { target: "./src/charts", from: ["./src/app", "./src/features"], message: "charts draw what they are given" },
  {
    target: "./src/components",
    from: ["./src/app", "./src/features", "./src/charts"],
    message: "components stand below",
  },
  {
    target: "./src/api",
    from: ["./src/app", "./src/features", "./src/charts", "./src/components"],
    message: "the API knows no face",
  },
  ...features.map((name) => ({
    target: `./src/features/${name}`,
    from: "./src/features",
    except: [`./${name}`],
    message: "features do not import features: move what both need to components or charts",
  })),
];

export default tseslint.config(
  { ignores: ["node_modules", "src/api/schema.d.ts"] },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.strictTypeChecked],
    plugins: { "import-x": importX, "react-hooks": reactHooks },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    settings: {
      "import-x/resolver-next": [
        createNodeResolver({
          extensions: [".ts", ".tsx", ".js"],
          alias: { "@": [new URL("./src", import.meta.url).pathname] },
        }),
      ],
    },
    rules: {
      ...reactHooks.configs.recommended.rules,
      "max-lines": ["error", { max: 300, skipBlankLines: true }],
      complexity: ["error", 16],
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      "@typescript-eslint/only-throw-error": "off", // the router throws what it is told to: notFound(), redirect()
      "react-hooks/incompatible-library": "off", // the virtual table's own hook; there is no compiler here
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "what is shown is text" },
        { selector: "AssignmentExpression[left.property.name='innerHTML']", message: "what is shown is text" },
      ],
      "import-x/no-restricted-paths": ["error", { basePath: import.meta.dirname, zones }],
    },
  },
);
