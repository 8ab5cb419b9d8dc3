import { inspect } from 'node:util';

/** What JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** A copy of the value that shares nothing with it. @throws TypeError for what JSON would drop, bend or refuse. */
export function copyJson(argument: string, value: unknown): Json {
  return JSON.parse(JSON.stringify(checked(argument, value))) as Json;
}

function checked(argument: string, value: unknown): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      break;
    case 'object':
      if (value === null) return value;
      if (Array.isArray(value)) return value.map((item, index) => checked(`${argument}[${index}]`, item));
      if (isPlain(value)) {
        return Object.fromEntries(
          Object.entries(value).map(([key, item]) => [key, checked(`${argument}.${key}`, item)]),
        );
      }
  }
  throw new TypeError(`Expected \`${argument}\` to be a JSON value, got ${inspect(value, { depth: 0 })}`);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
