import { createSign, generateKeyPairSync } from 'node:crypto';

/** A key, and a certificate for 127.0.0.1 that nobody vouches for but itself, both as PEM. */
export function selfSigned(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = sequence(oid([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]));
  const name = sequence(element(0x31, sequence(oid([0x55, 0x04, 0x03]), element(0x0c, Buffer.from('127.0.0.1')))));
  const validity = sequence(time('20200101000000Z'), time('20991231235959Z'));
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' });
  const content = sequence(
    element(0xa0, element(0x02, Buffer.from([2]))), // version 3
    element(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKeyInfo,
  );
  const signature = createSign('sha256').update(content).sign(privateKey);
  const certificate = sequence(content, ecdsaWithSha256, element(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

/** One element of DER: what it is, how long, and its content. */
function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(0x30, Buffer.concat(parts));
}

function oid(bytes: readonly number[]): Buffer {
  return element(0x06, Buffer.from(bytes));
}

function time(text: string): Buffer {
  return element(0x18, Buffer.from(text));
}
