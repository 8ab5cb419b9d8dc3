/** `lessor scenarios`: the scenarios that every implementation of a lease must pass, for programs and for people. */
import { corpus, corpusMarkdown, corpusSchema } from '../testing/index.ts';
import type { ScenariosInvocation } from './arguments.ts';
import { exitCodes } from './exit-codes.ts';
import { LineWriter } from './output.ts';

export async function scenarios({ format }: ScenariosInvocation): Promise<number> {
  const writer = new LineWriter();
  await writer.line(textIn(format).trimEnd());
  await writer.flush();
  return exitCodes.ok;
}

function textIn(format: ScenariosInvocation['format']): string {
  switch (format) {
    case 'json':
      return JSON.stringify(corpus(), null, 2);
    case 'markdown':
      return corpusMarkdown();
    case 'schema':
      return JSON.stringify(corpusSchema, null, 2);
    default:
      return format satisfies never;
  }
}
