// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of HTTP that a page on the loopback needs [RFC 9112]: the head of a GET, and answers
// after which the connection ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::softib {

struct HttpRequest {
  std::string path;   // "/state.json"
  std::string host;   // of the header
  std::string token;  // of the query
  std::uint64_t since = 0;
};

// Returns the status: 200, or 400 (no request of HTTP/1), 405 (another method than GET). `head` is
// all up to the empty line and with it.
int parse_http_request(std::string_view head, HttpRequest& request);

// Whether it may be served: 200, 403 (another site's page by a name of its own for 127.0.0.1, or no
// token), 404.
int check_http_request(const HttpRequest& request, std::uint16_t port, std::string_view token);

std::string http_answer(int status, std::string_view type, std::string_view body);

}  // namespace ib::softib
