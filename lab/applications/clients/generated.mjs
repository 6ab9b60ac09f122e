// A scraper of `scripts/applications scrape` that draws the head of each request from header-generator, which has learned from
// the heads of real browsers.

import { request } from "node:http";
import { HeaderGenerator } from "header-generator";
import { any, arrive, now, plan, report, site } from "./common.mjs";

const generator = new HeaderGenerator({ httpVersion: "1" });

/** Requests one page. Resolves to the status of the answer, or to `null` if it did not come in time. */
function get(url) {
    return new Promise((resolve) => {
        const asked = request(url, { agent: false, headers: { Host: new URL(url).host, ...generator.getHeaders() } }, (answer) => {
            answer.on("end", () => resolve(answer.statusCode));
            answer.on("error", () => resolve(null));
            answer.resume();
        });
        const timer = setTimeout(() => asked.destroy(new Error("out of time")), 1000 * plan.patience);
        asked.on("error", () => resolve(null));
        asked.on("close", () => clearTimeout(timer));
        asked.end();
    });
}

await arrive(async () => {
    const begun = now();
    report(begun, await get(site() + any(plan.paths)));
}, 1000);
