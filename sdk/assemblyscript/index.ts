// What `import ... from "kvrt"` finds.
export * from "./assembly";
