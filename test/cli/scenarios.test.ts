import { describe, expect, it } from 'vitest';
import { corpus, corpusMarkdown, corpusSchema } from '../../src/testing/index.ts';
import { Scene } from './commands.ts';
import { lessor } from './lessor.ts';

describe('lessor scenarios', () => {
  it('prints the scenarios as JSON for programs, without asking a store', async () => {
    await using scene = new Scene();
    const { code, stdout, stderr } = await lessor(scene, ['scenarios'], { LESSOR_STORE: 'sqlite:/dev/null/nowhere' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(corpus())));
  });

  it('prints them as Markdown for people, and the schema of the JSON', async () => {
    await using scene = new Scene();
    const [markdown, schema] = await Promise.all([
      lessor(scene, ['scenarios', '--format', 'markdown']),
      lessor(scene, ['scenarios', '--format', 'schema']),
    ]);
    expect(markdown).toEqual({ code: 0, stdout: corpusMarkdown(), stderr: '' });
    expect(JSON.parse(schema.stdout)).toEqual(corpusSchema);
  });

  it('a format that it does not know is a usage error', async () => {
    await using scene = new Scene();
    const { code, stdout, stderr } = await lessor(scene, ['scenarios', '--format', 'yaml']);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(/^lessor: Expected --format to be 'json' or 'markdown' or 'schema', got 'yaml'/);
  });
});
