// Readers and scrapers of `scripts/applications scrape` in headless Chromium or Firefox. Each client has its own context, with
// its own cookies and cache.

import puppeteer from "puppeteer-core";
import { any, arrive, exponential, now, plan, report, site, sleep } from "./common.mjs";

// Chromium does not start as root with its sandbox. Its name would tell that it is headless.
const options = {
    chromium: { browser: "chrome", executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] },
    firefox: { browser: "firefox", executablePath: "/usr/bin/firefox-esr" },
}[plan.browser];
const browser = await puppeteer.launch({ headless: true, ...options });
const agent = (await browser.userAgent()).replace("Headless", "");

/** Calls `visit` with an empty page of a new client. */
async function client(visit) {
    const context = await browser.createBrowserContext();
    try {
        const page = await context.newPage();
        if (plan.browser === "chromium") await page.setUserAgent({ userAgent: agent });
        page.setDefaultNavigationTimeout(1000 * plan.patience);
        await visit(page, site());
    } finally {
        await context.close();
    }
}

/** Opens a page and reports how long it took until all of it was there. Returns whether the reader got it. */
async function open(page, url, isFirst) {
    const begun = now();
    let status = null;
    try {
        // A further page is opened as by a click, and so the browser says from where.
        const [answer] = isFirst
            ? [await page.goto(url)]
            : await Promise.all([page.waitForNavigation(), page.evaluate((to) => void (location.href = to), url)]);
        status = answer?.status() ?? null;
    } catch (error) {
        if (!/timeout/i.test(error.message)) console.error(`${url}: ${error.message}`);
    }
    report(begun, status);
    return status === 200;
}

/** Returns a page as readers choose it: page k of the list is as likely as 1/k. */
function popular() {
    return plan.paths[Math.min(plan.paths.length - 1, Math.floor((plan.paths.length + 1) ** Math.random()) - 1)];
}

/** Reads pages of the site until the visit is over. */
async function read(page, host) {
    for (let isFirst = true; await open(page, host + popular(), isFirst); isFirst = false) {
        if (Math.random() < 1 / plan.pages_of_a_visit) return;
        await sleep(exponential(plan.think));
    }
}

/** Lets one reader after another come, without pauses, until the end. */
async function readers() {
    while (now() < plan.end) await client(read);
}

try {
    if (plan.scrapes) await arrive(() => client((page, host) => open(page, host + any(plan.paths), true)), 4);
    else await Promise.all(Array.from({ length: plan.readers }, readers));
} finally {
    await browser.close();
}
