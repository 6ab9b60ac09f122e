// An origin on Node's own HTTP server. Node passes the target on undecoded, so the reflection has
// no `route`.
"use strict";
const http = require("node:http");

// The maximum length of the field with the reflection. A response to HEAD has no body, so its
// reflection is in a field, which must be short.
const LONGEST_FIELD = 6000;

// Returns the value as JSON in ASCII. Every text in it is Latin-1, with one character for each
// byte.
function ascii(value) {
  const escape = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escape);
}

function answer(request, response) {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const hosts = request.headersDistinct.host;
    const seen = {
      method: request.method,
      target: request.url,
      host: hosts ? hosts.join(",") : null,
      route: null,
      body: Buffer.concat(pieces).toString("hex"),
    };
    let text = ascii(seen);
    if (request.method === "HEAD") {
      if (text.length > LONGEST_FIELD) text = ascii({ ...seen, body: null });
      response.setHeader("Reflection", text);
    }
    response.setHeader("Content-Type", "application/json");
    response.end(text);
  });
}

// Allow heads as large as those that the gateway may forward.
http.createServer({ maxHeaderSize: 65536 }, answer).listen(Number(process.argv[2]), "127.0.0.1");
