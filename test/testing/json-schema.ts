/** The part of JSON schema that the corpus uses. A keyword that it does not know is a violation, so that none is ignored. */

interface Schema {
  readonly [keyword: string]: unknown;
}

/** Where the value breaks the schema, one line each. */
export function violations(value: unknown, root: Schema): readonly string[] {
  const check = (at: string, part: unknown, schema: Schema): string[] =>
    Object.entries(schema).flatMap(([keyword, argument]) => {
      const wrong = (why: string) => [`${at}: ${why}`];
      switch (keyword) {
        case '$schema':
        case '$defs':
        case 'title':
        case 'required':
        case 'additionalProperties':
          return [];
        case '$ref':
          return check(at, part, (root['$defs'] as Record<string, Schema>)[String(argument).slice('#/$defs/'.length)]!);
        case 'const':
          return part === argument ? [] : wrong(`is not ${String(argument)}`);
        case 'enum':
          return (argument as unknown[]).includes(part) ? [] : wrong(`is none of ${String(argument)}`);
        case 'type':
          return typeOf(part) === argument ? [] : wrong(`is no ${String(argument)}`);
        case 'pattern':
          return typeof part === 'string' && new RegExp(argument as string).test(part)
            ? []
            : wrong(`is not ${String(argument)}`);
        case 'minimum':
          return (part as number) >= (argument as number) ? [] : wrong('is too low');
        case 'maximum':
          return (part as number) <= (argument as number) ? [] : wrong('is too high');
        case 'items':
          return Array.isArray(part)
            ? part.flatMap((item, index) => check(`${at}/${index}`, item, argument as Schema))
            : [];
        case 'oneOf': {
          const matches = (argument as Schema[]).filter((option) => check(at, part, option).length === 0).length;
          return matches === 1 ? [] : wrong(`matches ${matches} of the options`);
        }
        case 'properties':
          return typeOf(part) === 'object' ? checkProperties(at, part as Record<string, unknown>, schema) : [];
        default:
          return wrong(`the schema has a keyword \`${keyword}\``);
      }
    });
  const checkProperties = (at: string, part: Record<string, unknown>, schema: Schema): string[] => {
    const properties = schema['properties'] as Record<string, Schema>;
    const missing = (schema['required'] as string[])
      .filter((key) => !(key in part))
      .map((key) => `${at}: lacks ${key}`);
    const inside = Object.entries(part).flatMap(([key, inner]) =>
      properties[key] ? check(`${at}/${key}`, inner, properties[key]) : [`${at}: has ${key} besides`],
    );
    return [...missing, ...inside];
  };
  return check('', value, root);
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
