// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// node http_client.js HOST PORT ADDRESS COUNT: sends requests to http_server.js, with a connection
// for each and then all at once over connections that stay, and checks the answers. ADDRESS is the
// one that the server has to see.
const crypto = require('crypto');
const http = require('http');

const [host, port, address, count] = process.argv.slice(2);

function send(number, agent) {
  const body = crypto.createHash('sha256').update(String(number)).digest('hex').repeat(20 * number);
  const wanted = `POST ${crypto.createHash('sha256').update(body).digest('hex')} ${address}\n`;
  return new Promise((resolve, reject) => {
    const request = http.request({host, port, path: '/', method: 'POST', agent}, response => {
      let text = '';
      response.on('data', part => text += part);
      response.on('end', () => text === wanted ? resolve() : reject(new Error(text)));
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function run() {
  for (let i = 0; i < count; ++i) await send(i, false);
  const agent = new http.Agent({keepAlive: true, maxSockets: 8});
  await Promise.all([...Array(Number(count)).keys()].map(i => send(i, agent)));
  agent.destroy();
  console.log('all right');
}

run().catch(error => {
  console.log(error);
  process.exit(1);
});
