// The numbers of a self-contained file, in the shapes in which the service answers.

const LOOKED_THROUGH = 3000;

export class FileSource {
  isLive = false;

  constructor(data) {
    this.data = data;
    this.counted = data.counted;
    const { name, parent } = data.tree.nodes;
    this.placeOf = new Map(name.map((one, place) => [String(one), place]));
    this.below = name.map(() => []);
    for (let place = 1; place < name.length; place++) this.below[parent[place]].push(place);
  }

  async experiments() {
    return [this.data.experiment];
  }
  async experiment() {
    return this.data.experiment;
  }

  async tree(_, node, levels, limit, most) {
    const { nodes, prior_deviation, sep } = this.data.tree;
    const first = node ? this.placeOf.get(String(node)) : 0;
    if (first === undefined) throw new Error(`there is no node ${JSON.stringify(node)} in this file`);
    const places = [first];
    const parent = [-1];
    const more = [nodes.more[first]];
    let from = 0;
    for (let level = 0; level < levels; level++) {
      const to = places.length;
      for (let i = from; i < to; i++) {
        const children = this.below[places[i]];
        const shown = level && places.length + children.length > most ? [] : children.slice(0, limit);
        more[i] = nodes.more[places[i]] + children.length - shown.length;
        for (const child of shown) {
          places.push(child);
          parent.push(i);
          more.push(nodes.more[child] + this.below[child].length);
        }
      }
      from = to;
    }
    const picked = (column) => places.map((place) => nodes[column][place]);
    const among = (column) => {
      const wanted = new Set(nodes[column]);
      return places.flatMap((place, i) => (wanted.has(place) ? [i] : []));
    };
    const columns = ["name", "mean", "deviation", "observed_mean", "decisions", "low", "high"];
    return {
      path: this.pathTo(first),
      low: nodes.low[first],
      high: nodes.high[first],
      prior_deviation,
      sep,
      nodes: {
        ...Object.fromEntries(columns.map((column) => [column, picked(column)])),
        parent,
        more,
        retired: among("retired"),
        added: among("added"),
      },
    };
  }

  pathTo(place) {
    const { name, parent } = this.data.tree.nodes;
    const path = [];
    for (let one = place; one >= 0; one = parent[one]) path.unshift(name[one]);
    return path;
  }

  async top(_, order, k) {
    return { nodes: this.data.top[order].slice(0, k) };
  }
  async recent() {
    return { decisions: this.data.explained.map(({ decision_id, action, nodes }) => ({ decision_id, action, path: nodes.map((node) => node.name) })) };
  }
  async explain(_, decision) {
    const found = this.data.explained.find((one) => one.decision_id === decision);
    if (found === undefined) throw new Error(`this file does not explain ${decision}`);
    return found;
  }
  async prior() {
    return this.data.prior;
  }

  async search(_, text, limit) {
    const { nodes } = this.data.tree;
    const wanted = text.toLowerCase();
    const found = [];
    for (let place = 0; place < nodes.name.length && found.length < LOOKED_THROUGH; place++) {
      if (String(nodes.name[place]).toLowerCase().includes(wanted)) found.push(place);
    }
    found.sort((a, b) => nodes.decisions[b] - nodes.decisions[a]);
    return {
      nodes: found.slice(0, limit).map((place) => ({
        name: nodes.name[place],
        mean: nodes.mean[place],
        decisions: nodes.decisions[place],
        path: this.pathTo(place),
      })),
    };
  }
}
