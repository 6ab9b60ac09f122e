// Readers and scrapers of `scripts/applications scrape` in headless Chromium (its shell, without windows) or Firefox. Each client
// has its own context, with its own cookies and cache.

import puppeteer from "puppeteer-core";
import { any, arrive, exponential, now, plan, report, site, sleep } from "./common.mjs";

// Chromium does not start as root with its sandbox.
const options = {
    chromium: { browser: "chrome", headless: "shell", executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox"] },
    firefox: { browser: "firefox", headless: true, executablePath: "/usr/bin/firefox-esr" },
}[plan.browser];
const browser = await puppeteer.launch(options);
// The name of a headless Chromium would tell scrapers and readers from others.
const agent = (await browser.userAgent()).replace("Headless", "");

/** Calls `visit` with an empty page of a new client. A busy machine may keep the browser from opening or closing one in time. */
async function client(visit) {
    let context;
    try {
        context = await browser.createBrowserContext();
        const page = await context.newPage();
        if (plan.browser === "chromium") await page.setUserAgent({ userAgent: agent });
        page.setDefaultNavigationTimeout(1000 * plan.patience);
        await visit(page, site());
    } catch (error) {
        console.error(`${plan.browser}: ${error.message}`);
        await sleep(1);
    } finally {
        await context?.close().catch((error) => console.error(`${plan.browser}: ${error.message}`));
    }
}

/**
 * Opens a page and reports how long it took until all of it was there. Returns whether the reader got it. A page of which a part
 * was refused has the status of that part.
 */
async function open(page, url, isFirst) {
    const begun = now();
    let [status, refused] = [null, null];
    const watch = (part) => (refused = part.status() >= 429 ? part.status() : refused);
    page.on("response", watch);
    try {
        // A further page is opened as by a click, and so the browser says from where.
        const [answer] = isFirst
            ? [await page.goto(url)]
            : await Promise.all([page.waitForNavigation(), page.evaluate((to) => void (location.href = to), url)]);
        // A page that the browser has in its cache is "not modified".
        status = refused ?? (answer?.status() === 304 ? 200 : (answer?.status() ?? null));
    } catch (error) {
        if (!/timeout/i.test(error.message)) console.error(`${url}: ${error.message}`);
    }
    page.off("response", watch);
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

/** Lets one reader after another come until the end. */
async function readers() {
    while (now() < plan.end) {
        await client(read);
        await sleep(exponential(plan.think));
    }
}

// The library ends the browser when this process exits.
process.once("SIGTERM", () => process.exit(143));

try {
    if (plan.scrapes) await arrive(() => client((page, host) => open(page, host + any(plan.paths), true)), 4);
    else await Promise.all(Array.from({ length: plan.readers }, readers));
} finally {
    await browser.close();
}
