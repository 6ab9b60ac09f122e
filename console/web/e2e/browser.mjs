// A real Chromium for tests. Its pages record everything that must not happen on them: errors,
// violations of the content security policy, and requests to other hosts. The gateway's binary may
// contain an older console, so the console's files are taken from console/dist, with the gateway's
// headers.
import { chromium } from 'playwright-core';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const DIST = resolve(import.meta.dirname, '../../dist');
const FILES = { '/': 'index.html', '/console.js': 'console.js', '/console.css': 'console.css' };
const SCREENSHOTS = process.env.SCREENSHOTS;
const AXE = readFileSync(resolve(import.meta.dirname, '../node_modules/axe-core/axe.min.js'), 'utf8');
export const EXECUTABLE =
    process.env.CHROMIUM ??
    ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

const ARGUMENTS = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
];

export async function startBrowser() {
    const profile = mkdtempSync(join(tmpdir(), 'bywash-chromium-'));
    const browser = await chromium.launchPersistentContext(profile, {
        executablePath: EXECUTABLE,
        args: ARGUMENTS,
        headless: true,
    });
    const main = browser.browser();
    return {
        /**
         * Opens a page in a browser context of its own, which shares nothing with other contexts.
         */
        open: options => open(main, options),
        close: async () => {
            await browser.close();
            rmSync(profile, { recursive: true, force: true });
        },
    };
}

/**
 * Opens a page. With `isBuilt`, the page loads the files in the gateway's binary instead of those
 * in console/dist.
 */
async function open(browser, { theme = 'light', width = 1280, height = 860, isBuilt = false } = {}) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, deviceScaleFactor: 1 });
    const page = await context.newPage();
    const faults = [];
    page.on(
        'console',
        message =>
            message.type() === 'error' &&
            !/^Failed to load resource/.test(message.text()) &&
            faults.push(`console: ${message.text()}`),
    );
    page.on('pageerror', error => faults.push(`error: ${error.stack}`));
    page.on('dialog', dialog => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
    page.on('request', request => {
        const { protocol, hostname } = new URL(request.url());
        if (!['data:', 'blob:'].includes(protocol) && hostname !== '127.0.0.1')
            faults.push(`asked elsewhere: ${request.url()}`);
    });
    if (isBuilt) return { page, faults, context };
    await context.route(
        url => url.pathname in FILES,
        async route => {
            const answer = await route.fetch();
            const ours = readFileSync(join(DIST, FILES[new URL(route.request().url()).pathname]));
            const headers = { ...answer.headers() };
            delete headers['content-encoding'];
            delete headers['content-length'];
            await route.fulfill({ status: answer.status(), headers, body: ours });
        },
    );
    return { page, faults, context };
}

/** Returns the serious and critical violations of accessibility rules on the page, as texts. */
export async function axe(page) {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(
            ({ id, impact, nodes }) =>
                `${impact} ${id}: ${nodes
                    .slice(0, 3)
                    .map(node => `${node.target.join(' ')} ${node.any[0]?.message ?? node.failureSummary}`)
                    .join('; ')}`,
        );
}

/**
 * Saves a picture of the whole page in the folder that the environment variable SCREENSHOTS names.
 * Does nothing if the variable is not set.
 */
export async function screenshot(page, name) {
    if (!SCREENSHOTS) return;
    mkdirSync(SCREENSHOTS, { recursive: true });
    const size = page.viewportSize();
    const height = await page.evaluate(() => (document.querySelector('main')?.scrollHeight ?? 800) + 110);
    await page.setViewportSize({ ...size, height: Math.min(2400, Math.max(size.height, height)) });
    await page.waitForTimeout(250);
    await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
    await page.setViewportSize(size);
}
