/** A doubly linked list whose nodes carry the links: joining, leaving and moving to the end cost the same at any size. */
export interface Linked<Node extends Linked<Node>> {
  list: LinkedList<Node> | null;
  before: Node | null;
  after: Node | null;
}

/** A node stands in at most one list at a time. */
export class LinkedList<Node extends Linked<Node>> {
  first: Node | null = null;
  size = 0;
  #last: Node | null = null;

  /** Puts the node at the end, out of whichever list it stood in. */
  append(node: Node): void {
    node.list?.remove(node);
    node.list = this;
    node.before = this.#last;
    if (this.#last) this.#last.after = node;
    else this.first = node;
    this.#last = node;
    this.size++;
  }

  remove(node: Node): void {
    if (node.before) node.before.after = node.after;
    else this.first = node.after;
    if (node.after) node.after.before = node.before;
    else this.#last = node.before;
    node.list = node.before = node.after = null;
    this.size--;
  }
}
