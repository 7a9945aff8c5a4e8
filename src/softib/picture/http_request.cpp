// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/http_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace ib::softib {
namespace {

// Takes what is before `end` from the text, and `end`.
std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::size_t place = text.find(end);
  const std::string_view taken = text.substr(0, place);
  text.remove_prefix(place == std::string_view::npos ? text.size() : place + end.size());
  return taken;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool same_name(std::string_view name, std::string_view lower) {
  return std::equal(name.begin(), name.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

void take_query(std::string_view query, HttpRequest& request) {
  while (!query.empty()) {
    std::string_view value = take_until(query, "&");
    const std::string_view name = take_until(value, "=");
    if (name == "token") request.token = value;
    if (name == "since") {
      std::from_chars(value.data(), value.data() + value.size(), request.since);
    }
  }
}

// The time does not tell how much of it was right.
bool is_token(std::string_view given, std::string_view right) {
  if (given.size() != right.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    difference |= static_cast<unsigned>(given[i]) ^ static_cast<unsigned>(right[i]);
  }
  return difference == 0;
}

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    default: return "Error";
  }
}

}  // namespace

int parse_http_request(std::string_view head, HttpRequest& request) {
  constexpr int kBad = 400;
  std::string_view line = take_until(head, "\r\n");
  const std::string_view method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  if (!is_plain(method) || method.empty() || !is_plain(target) || !target.starts_with('/')) {
    return kBad;
  }
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return kBad;
  unsigned hosts = 0;
  while (!head.empty()) {
    std::string_view field = take_until(head, "\r\n");
    if (field.empty()) break;
    if (field.find(':') == std::string_view::npos) return kBad;
    const std::string_view name = take_until(field, ":");
    if (name.empty() || !is_plain(name)) return kBad;
    if (!same_name(name, "host")) continue;
    request.host = trimmed(field);
    ++hosts;
  }
  if (hosts != 1) return kBad;
  if (method != "GET") return 405;
  request.path = take_until(target, "?");
  take_query(target, request);
  return 200;
}

int check_http_request(const HttpRequest& request, std::uint16_t port, std::string_view token) {
  const bool is_here = request.host == fmt::format("127.0.0.1:{}", port) ||
                       request.host == fmt::format("localhost:{}", port);
  if (!is_here || !is_token(request.token, token)) return 403;
  return request.path == "/" || request.path == "/state.json" ? 200 : 404;
}

std::string http_answer(int status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}; charset=utf-8\r\n"
      "Content-Length: {}\r\n"
      "Connection: close\r\n"
      "Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "X-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n\r\n{}",
      status, reason_of(status), type, body.size(), body);
}

}  // namespace ib::softib
