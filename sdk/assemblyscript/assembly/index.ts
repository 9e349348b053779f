// Guests of kvrt in AssemblyScript. README.md has the whole of a handler.

export * from "./abi";
export * from "./answer";
export { guest } from "./config";
export * from "./frame";
export * from "./host";
export { Hashes, Value } from "./value";
export { Field, MAX_COPIED, Node, Writer } from "./writer";
