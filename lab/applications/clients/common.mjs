// The parts that the clients of `scripts/applications scrape` have in common.

import { readFileSync } from "node:fs";

/**
 * Reads the plan of this program: a JSON document in the file that the first argument names.
 * `programs.py` documents its members.
 */
export const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));

/** Resolves after a time in seconds. */
export const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * Math.max(0, seconds)));

/** Returns the seconds since the begin of the run. */
export const now = () => Date.now() / 1000 - plan.zero;

/** Returns a random time in seconds, with this mean, of an exponential distribution. */
export const exponential = (mean) => -mean * Math.log(1 - Math.random());

/** Returns a random element of a list. */
export const any = (list) => list[Math.floor(Math.random() * list.length)];

let clients = 0;

/** Returns the URL of the site for a new client. Its host is the address from which the client's requests come. */
export function site() {
    const number = clients++;
    return `http://127.${plan.network}.${Math.floor(number / 250) % 250}.${1 + (number % 250)}:${plan.port}`;
}

/** Prints the result of one request. A `status` of `null` means that no answer came in time. */
export function report(begun, status) {
    console.log(JSON.stringify([begun, status, now() - begun]));
}

/**
 * Calls `client` at random times, `plan.rate` times a second, from `plan.begin` to `plan.end`. Not more than `most` run at a
 * time. Waits until all have ended.
 */
export async function arrive(client, most) {
    const running = new Set();
    let at = plan.begin;
    for (;;) {
        at += exponential(1 / plan.rate);
        if (at >= plan.end) break;
        await sleep(at - now());
        if (now() >= plan.end) break;
        if (running.size >= most) await Promise.race(running);
        const one = client().finally(() => running.delete(one));
        running.add(one);
    }
    await Promise.all(running);
}
