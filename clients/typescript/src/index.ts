// A client of the HTTP API of Outlive: `new Outlive("https://runs.example.com", { key: "olv_..." })`.
export * from "./api.ts";
export { Away, type Message, type Options, Refused, type RequestOptions } from "./transport.ts";
