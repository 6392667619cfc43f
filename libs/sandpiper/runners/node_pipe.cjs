'use strict';
// Blocking frames over inherited pipes: 4-byte big-endian length, one byte of kind, JSON.

const fs = require('node:fs');

const MAX_BYTES = 4 * 1024 * 1024;

function send(fd, kind, value) {
  const body = Buffer.from(kind + JSON.stringify(value));
  if (body.length > MAX_BYTES) throw new Error(`value of ${body.length} bytes is larger than ${MAX_BYTES}`);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  const data = Buffer.concat([head, body]);
  for (let done = 0; done < data.length;) done += fs.writeSync(fd, data, done);
}

// One frame as [kind, value]; null at the end of the pipe.
function receive(fd) {
  const head = exactly(fd, 4);
  if (head === null) return null;
  const body = exactly(fd, head.readUInt32BE());
  if (body === null) return null;
  return [String.fromCharCode(body[0]), JSON.parse(body.toString('utf8', 1))];
}

function exactly(fd, size) {
  const data = Buffer.alloc(size);
  for (let done = 0; done < size;) {
    const count = fs.readSync(fd, data, done, size - done, null);
    if (count === 0) return null;
    done += count;
  }
  return data;
}

module.exports = { send, receive };
