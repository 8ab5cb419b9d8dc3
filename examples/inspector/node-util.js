/** Stands in for `node:util`, of which a registry in a browser needs only this. */
export const inspect = String;
