/** With `LESSOR_FULL=1` the searches go further, as a release does. */
export const full = process.env['LESSOR_FULL'] === '1';
