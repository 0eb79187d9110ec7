// The part of the tree that is shown, as nodes with children; the service answers with columns.

import { ownPart } from "./names.js";

// An action without decisions has as much area as a tenth of one, so that it can be seen.
const LEAST = 0.1;

export function nodesOf(view) {
  const { name, parent, mean, deviation, observed_mean, decisions, more, low, high } = view.nodes;
  const retired = new Set(view.nodes.retired);
  const added = new Set(view.nodes.added);
  const depth = view.path.length - 1;
  const nodes = name.map((one, i) => ({
    name: one,
    key: String(one),
    mean: mean[i],
    deviation: deviation[i],
    observed: observed_mean[i],
    decisions: decisions[i],
    more: more[i],
    low: low[i],
    high: high[i],
    isRetired: retired.has(i),
    isNew: added.has(i),
    children: [],
  }));
  nodes[0].depth = depth;
  nodes[0].label = ownPart(name[0], view.path[depth - 1], view.sep);
  nodes[0].path = view.path;
  for (let i = 1; i < nodes.length; i++) {
    const node = nodes[i];
    node.above = nodes[parent[i]];
    node.above.children.push(node);
    node.depth = node.above.depth + 1;
    node.label = ownPart(node.name, node.above.name, view.sep);
    node.path = [...node.above.path, node.name];
  }
  for (const node of nodes) {
    const before = view.prior_deviation[Math.min(node.depth, view.prior_deviation.length - 1)];
    node.uncertainty = before > 0 ? node.deviation / before : 0;
    if (node.children.length && node.more) node.children.push(restOf(node));
  }
  return nodes[0];
}

// What stands for the children that are not shown: as large as the smallest that is.
function restOf(node) {
  const smallest = Math.min(...node.children.map((child) => child.decisions));
  return { key: `${node.key}\u0000more`, rest: node.more, above: node, decisions: smallest, depth: node.depth + 1, children: [] };
}

export function areaOf(node) {
  return Math.sqrt(Math.max(node.decisions, LEAST));
}

// The lowest and the highest mean of what is shown below a node.
export function meansOf(root) {
  const means = everyNode(root).filter((node) => node !== root && !node.rest).map((node) => node.mean);
  if (!means.length) means.push(root.mean);
  return [Math.min(...means), Math.max(...means)];
}

export function everyNode(root) {
  return [root, ...root.children.flatMap(everyNode)];
}
