// Where the page's numbers come from: the service that serves it, or what a self-contained file has in it.

import { keptKey } from "./place.js";
import { FileSource } from "./file_source.js";

const PATIENCE = 15000;

export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the service answered ${status}`);
    this.status = status;
    this.isStarting = problem.type === "urn:bough:problem:starting";
  }
}

class ServiceSource {
  isLive = true;
  counted = "decision";

  async experiments() {
    return (await this.get("v1")).experiments;
  }
  experiment(name) {
    return this.of(name);
  }
  tree(name, node, levels, limit, nodes) {
    return this.of(name, "/treemap", { node: node || undefined, levels, limit, nodes });
  }
  top(name, order, k) {
    return this.of(name, "/top", { order, k });
  }
  recent(name, limit) {
    return this.of(name, "/decisions", { limit });
  }
  explain(name, decision) {
    return this.of(name, `/decisions/${encodeURIComponent(decision)}/explain`);
  }
  series(name, minutes) {
    return this.of(name, "/series", { minutes });
  }
  prior(name) {
    return this.of(name, "/prior");
  }
  state(name) {
    return this.of(name, "/state");
  }
  search(name, q, limit) {
    return this.of(name, "/search", { q, limit });
  }

  of(name, rest = "", query = {}) {
    return this.get(`v1/${encodeURIComponent(name)}${rest}`, query);
  }

  // Addresses are relative, so that the page works behind a proxy that puts it somewhere else.
  async get(path, query = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const address = given.length ? `${path}?${new URLSearchParams(given)}` : path;
    const key = keptKey();
    const answer = await fetch(address, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(PATIENCE),
      cache: "no-store",
    });
    const isJson = (answer.headers.get("content-type") || "").includes("json");
    const body = isJson ? await answer.json() : {};
    if (!answer.ok) throw new Refusal(answer.status, body);
    return body;
  }
}

export function findSource() {
  const data = document.getElementById("data");
  return data === null ? new ServiceSource() : new FileSource(JSON.parse(data.textContent));
}
