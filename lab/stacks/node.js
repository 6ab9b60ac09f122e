// A handler of node:http for `stacks` that works in small steps. There is a plain one, one that
// listens for the end of its connection, and one within terminable().
"use strict";
const dgram = require("node:dgram");
const http = require("node:http");
const { setTimeout: sleep } = require("node:timers/promises");
const { Controller, terminable } = require("../../sdk/node");

const observer = dgram.createSocket("udp4");
const tell = (name, word) => observer.send(`${name} ${word}`, Number(process.env.STACKS_OBSERVER), "127.0.0.1");

async function work(req, res, signal) {
  const name = req.url.split("/")[2];
  let over = false;
  const stop = () => {
    if (over) return;
    over = true;
    tell(name, "told");
  };
  signal?.addEventListener("abort", stop);
  if (req.url.startsWith("/ask/")) res.on("close", stop);
  for (let step = 0; step < 40 && !over; step++) {
    tell(name, "step");
    await sleep(20);
  }
  if (over) return;
  over = true;
  tell(name, "done");
  res.end("done");
}

const controller = new Controller({ work: { runMin: 1000, runMax: 30_000 } });
const within = terminable(controller, () => "work", (req, res) => work(req, res, req.bywash.signal));
http
  .createServer((req, res) => (req.url.startsWith("/sdk/") ? within(req, res) : work(req, res)))
  .listen(Number(process.env.STACKS_PORT), "127.0.0.1");
