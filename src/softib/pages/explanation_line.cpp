// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A line as a program has printed it: all that can be explained in it, one card each.
#include "softib/pages/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace ib::softib {
namespace {

// Words of letters and digits in lower case, each between blanks: " failed status 12 wr id 0 ".
std::string words_of(std::string_view line) {
  std::string words = " ";
  for (const char c : line) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (words.back() != ' ') {
      words += ' ';
    }
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

bool mentions(const std::string& words, std::string_view phrase) {
  return words.find(words_of(phrase)) != std::string::npos;
}

// The number behind one of the words, of which the longest that is there counts: "syndrom 0x10".
template <std::size_t N>
std::optional<std::uint32_t> number_behind(const std::string& words,
                                           const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names) {
    const std::string key = fmt::format(" {} ", name);
    const std::size_t at = words.find(key);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(words).substr(at + key.size());
    if (const auto number = number_in(rest.substr(0, rest.find(' ')))) return number;
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 3> kStatusWords = {"status number", "status code", "status"};
constexpr std::array<std::string_view, 8> kVendorWords = {
    "vendor error", "vendor err", "vendorerr", "vendor", "vend", "syndrome", "syndrom", "synd"};
// Texts of ibv_wc_status_str that any program may print about something else.
constexpr std::array<std::string_view, 4> kEveryday = {"success", "fatal error", "general error",
                                                       "aborted error"};

// Lines of programs that have found no device, or no peer before there is any InfiniBand: perftest
// and ibv_rc_pingpong exchange the numbers of their queue pairs over TCP.
struct Saying {
  std::string_view phrase;
  Explanation meaning;
};
constexpr Explanation kNoDevice = {
    "no HCA", "libibverbs has listed no HCA to the program.",
    "Start it as `softib run -- PROGRAM`. If it was: a program that is static or set-user-ID, or "
    "one that another one starts with an environment of its own (sudo, env -i), does not see the "
    "HCAs; put `softib run --` directly before it."};
constexpr Explanation kNoServer = {
    "no server", "Over TCP: nobody answers at that address and port.",
    "`softib wait --node N --listen PORT` between server and client waits until the server "
    "listens, and says who listens elsewhere."};
constexpr Explanation kPortTaken = {
    "port taken", "Over TCP: a program of this machine has the port.",
    "TCP ports belong to the machine, not to a node or fabric: give this run another port (`-p` of "
    "perftest and ibv_rc_pingpong), or a network namespace."};
constexpr std::array<Saying, 6> kSayings = {{{"no ib devices found", kNoDevice},
                                             {"no rdma devices were detected", kNoDevice},
                                             {"failed to get ib devices list", kNoDevice},
                                             {"did not detect devices", kNoDevice},
                                             {"couldn't connect to", kNoServer},
                                             {"couldn't listen to port", kPortTaken}}};

class Cards {
 public:
  void add(const std::string& card) {
    const bool is_new = std::find(all_.begin(), all_.end(), card) == all_.end();
    if (!card.empty() && is_new) all_.push_back(card);
  }
  bool empty() const { return all_.empty(); }
  std::string text() const {
    std::string text;
    for (const std::string& card : all_) text += (text.empty() ? "" : "\n") + card;
    return text;
  }

 private:
  std::vector<std::string> all_;
};

void add_texts(const std::string& words, const std::vector<std::string_view>& texts, Cards& cards) {
  for (const std::string_view text : texts) {
    const bool is_everyday = std::find(kEveryday.begin(), kEveryday.end(), text) != kEveryday.end();
    const bool is_phrase = words_of(text).find(' ', 1) + 1 != words_of(text).size();
    if (is_phrase && !is_everyday && mentions(words, text)) cards.add(explain_word(text));
  }
}

// "RDMA_CM_EVENT_REJECTED, error 8": the number belongs to the event.
void add_event_with_status(std::string_view line, Cards& cards) {
  constexpr std::string_view kPrefix = "RDMA_CM_EVENT_";
  const std::size_t at = line.find(kPrefix);
  if (at == std::string_view::npos) return;
  std::string_view rest = line.substr(at);
  const auto is_name = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  const std::string name(rest.begin(), std::find_if_not(rest.begin(), rest.end(), is_name));
  rest.remove_prefix(name.size());
  for (const std::string_view word : {"error", "status"}) {
    const std::size_t found = rest.find(word);
    if (found == std::string_view::npos) continue;
    const std::size_t number = rest.find_first_of("-0123456789", found);
    if (number == std::string_view::npos) continue;
    const std::size_t end = std::min(rest.find_first_not_of("-0123456789", number), rest.size());
    return cards.add(
        explain_word(fmt::format("{}, error {}", name, rest.substr(number, end - number))));
  }
  cards.add(explain_word(name));
}

void add_sayings(const std::string& words, Cards& cards) {
  for (const Saying& one : kSayings) {
    if (mentions(words, one.phrase)) cards.add(card(one.meaning.name, one.meaning));
  }
}

void add_status_number(const std::string& words, Cards& cards) {
  if (!cards.empty() || mentions(words, "sa status")) return;
  const auto number = number_behind(words, kStatusWords);
  if (number && *number != 0 && *number < verbs::kWcStatusCount) {
    cards.add(explain_word(verbs::wc_status_name(static_cast<verbs::WcStatus>(*number))));
  }
}

void add_vendor_error(const std::string& words, Cards& cards) {
  const auto number = number_behind(words, kVendorWords);
  if (!number || *number == 0) return;
  if (*number < verbs::kCauseCount)
    return cards.add(explain_word(fmt::format("cause {}", *number)));
  cards.add(
      fmt::format("vendor_err {0} ({0:#x})\n  what:  softib has no such cause: the line is "
                  "of another HCA.\n",
                  *number));
}

}  // namespace

std::vector<std::string> names_in(std::string_view line) {
  std::vector<std::string> found;
  std::size_t start = 0;
  while (start < line.size()) {
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (start < line.size() && !is_part(line[start])) ++start;
    std::size_t end = start;
    while (end < line.size() && is_part(line[end])) ++end;
    const std::string word(line.substr(start, end - start));
    start = end;
    // "none" and "success" are everyday words; a call has cards for all its refusals.
    const bool is_name = word.size() > 5 && !word.starts_with("ibv_") &&
                         std::any_of(word.begin() + 1, word.end(),
                                     [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    if (is_name && !explain_word(word).empty()) found.push_back(word);
  }
  return found;
}

std::string explain_line(std::string_view line) {
  const std::string words = words_of(line);
  Cards cards;
  add_sayings(words, cards);
  cards.add(explain_stream(line));
  add_texts(words, wc_status_texts(), cards);
  add_texts(words, async_event_texts(), cards);
  add_event_with_status(line, cards);
  for (const std::string& name : names_in(line)) {
    if (!name.starts_with("RDMA_CM_EVENT_")) cards.add(explain_word(name));
  }
  add_status_number(words, cards);
  add_vendor_error(words, cards);
  add_texts(words, errno_texts(), cards);
  if (const auto number = number_behind(words, std::array<std::string_view, 1>{"errno"})) {
    cards.add(explain_word(fmt::format("errno {}", *number)));
  }
  return cards.text();
}

}  // namespace ib::softib
