// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// node http_server.js PORT: answers each request with its method, the hash of its body and the
// address of the client, and each request for /large with a large body.
const crypto = require('crypto');
const http = require('http');

const LARGE = 3000000;

const server = http.createServer((request, response) => {
  const hash = crypto.createHash('sha256');
  request.on('data', part => hash.update(part));
  request.on('end', () => {
    const line = `${request.method} ${hash.digest('hex')} ${request.socket.remoteAddress}\n`;
    response.end(request.url === '/large' ? 'x'.repeat(LARGE) : line);
  });
});
server.listen(Number(process.argv[2]), '0.0.0.0');
