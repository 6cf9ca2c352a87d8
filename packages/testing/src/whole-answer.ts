/** The answer of a fetch, read to its end: what is under way is known, and an answer has no half that comes later. */
export async function wholeAnswer(asked: Promise<Response>): Promise<Response> {
  const answer = await asked;
  let body: BodyInit | null;
  try {
    body = await answer.arrayBuffer();
  } catch (error) {
    body = new ReadableStream({
      start: (stream) => {
        stream.error(error);
      },
    });
  }
  const copy = new Response([204, 205, 304].includes(answer.status) ? null : body, {
    status: answer.status,
    statusText: answer.statusText,
    headers: answer.headers,
  });
  // PouchDB in Node asks for a Buffer where a browser gives a Blob, which its memory adapter cannot hash.
  Object.assign(copy, { buffer: async () => Buffer.from(await copy.arrayBuffer()) });
  Object.defineProperty(copy, 'url', { value: answer.url });
  Object.defineProperty(copy, 'redirected', { value: answer.redirected });
  return copy;
}
