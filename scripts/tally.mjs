// Adds up the reports in a folder and ends with one line: `N passed, N failed`. Fails when anything failed, or was skipped
// without a test at all having passed.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const total = { passed: 0, failed: 0 };

for (const file of readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .toSorted()) {
  const report = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const { passed, failed } = 'testResults' in report ? ofVitest(report) : report;
  console.log(`${file.replace('.json', '')}: ${passed} passed, ${failed} failed`);
  total.passed += passed;
  total.failed += failed;
}
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

/** A file that failed without a failing test (it could not be read, or left something behind) counts as one failure. */
function ofVitest({ numPassedTests, numFailedTests, success, testResults }) {
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  const failed = numFailedTests + broken.length;
  return { passed: numPassedTests, failed: success ? failed : Math.max(1, failed) };
}
