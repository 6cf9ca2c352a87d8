import type { HttpAnswer } from './answer.js';

const page = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Welcome to Guest WiFi</title></head>
  <body>
    <h1>Welcome to Guest WiFi</h1>
    <p>Please accept the terms of use to go online.</p>
    <form method="post" action="/accept"><button>Accept and connect</button></form>
  </body>
</html>
`;

/** What a hotspot answers to everything before somebody has signed in there: a page, mostly with status 200. */
export function captivePortalAnswer(status = 200): HttpAnswer {
  return { status, headers: { 'content-type': 'text/html; charset=utf-8' }, body: page };
}
