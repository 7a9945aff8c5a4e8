// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/explanation.h"

#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace ib::softib {
namespace {

using verbs::WcStatus;
using verbs::control::Cause;
using verbs::control::PostRefusal;

// Without the prefixes of completion statuses.
std::string plain(std::string_view text) {
  std::string result = plain_letters(text);
  for (const std::string_view prefix : {"ibvwc", "ib", "wc", "status"}) {
    if (result.starts_with(prefix) && result.size() > prefix.size()) {
      result.erase(0, prefix.size());
    }
  }
  return result;
}

// Lines of at most kColumns characters behind an indent.
std::string wrapped(std::string_view text, std::string_view first_indent) {
  std::string result{first_indent};
  std::size_t column = first_indent.size();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column + word.size() > kColumns) {
      result += "\n" + std::string(first_indent.size(), ' ');
      column = first_indent.size();
    }
    result += word;
    result += ' ';
    column += word.size() + 1;
  }
  result.back() = '\n';
  for (std::size_t at = result.find(" \n"); at != std::string::npos; at = result.find(" \n")) {
    result.erase(at, 1);
  }
  return result;
}

std::string status_card(WcStatus status) {
  return card(fmt::format("completion status {}: {} ({})", static_cast<std::uint32_t>(status),
                          verbs::wc_status_name(status), explain(status).name),
              explain(status));
}

std::string cause_card(Cause cause) {
  return card(fmt::format("cause {} (vendor_err): {}", static_cast<std::uint32_t>(cause),
                          explain(cause).name),
              explain(cause));
}

std::string refusal_card(PostRefusal why) {
  return card(fmt::format("refused: {}", explain(why).name), explain(why));
}

std::string refusal_cards(std::string_view wanted) {
  std::string text;
  const std::vector<PostRefusal> of_call = refusals_of(wanted.empty() ? "-" : wanted);
  for (const PostRefusal why : of_call) text += refusal_card(why);
  if (!text.empty()) return text;
  for (const PostRefusal why : refusals_of("")) {
    if (plain(explain(why).name) == plain(wanted)) return refusal_card(why);
  }
  return {};
}

// Other vocabularies have the same numbers.
std::string by_number(std::uint32_t number) {
  if (number >= verbs::kWcStatusCount) return {};
  return status_card(static_cast<WcStatus>(number)) +
         fmt::format(
             "  not it? `softib explain cause {0}` (vendor_err), `event {0}` (of librdmacm),\n"
             "          `reason {0}` (status of RDMA_CM_EVENT_REJECTED), `errno {0}`\n",
             number);
}

// The texts of ibv_wc_status_str. The last two are of tag matching, which softib does not have.
constexpr std::array<std::string_view, 24> kStatusTexts = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};

std::string by_status_text(std::string_view word) {
  const std::string wanted = plain_letters(word);
  for (std::uint32_t i = 0; i < kStatusTexts.size(); ++i) {
    if (wanted != plain_letters(kStatusTexts[i])) continue;
    if (i < verbs::kWcStatusCount) return status_card(static_cast<WcStatus>(i));
    return card(fmt::format("completion status {}: {}", i, kStatusTexts[i]),
                {nullptr, "A completion of tag matching.",
                 "softib has no tag matching; you should not see this."});
  }
  return {};
}

// "vendor_err 15", "cause=0xf".
std::string by_cause_number(std::string_view word) {
  for (const std::string_view prefix : {"vendorerr", "vendorerror", "cause"}) {
    if (!word.starts_with(prefix)) continue;
    const auto number = number_in(word.substr(prefix.size()));
    if (number && *number < verbs::kCauseCount) return cause_card(static_cast<Cause>(*number));
  }
  return {};
}

}  // namespace

std::string plain_letters(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string card(const std::string& title, const Explanation& it) {
  return painted(Paint::Heading, title) + "\n" + wrapped(it.meaning, "  what:  ") +
         wrapped(it.advice, "  to do: ");
}

std::optional<Cause> find_cause(std::string_view name) {
  for (std::uint32_t i = 0; i < verbs::kCauseCount; ++i) {
    const auto cause = static_cast<Cause>(i);
    if (plain(explain(cause).name) == plain(name)) return cause;
  }
  return std::nullopt;
}

std::string explain_word(std::string_view word) {
  const std::string wanted = plain(word);
  if (const auto number = number_in(wanted); number && !word.starts_with('-')) {
    if (std::string text = by_number(*number); !text.empty()) return text;
  }
  if (word.starts_with("--")) return {};
  for (std::uint32_t i = 0; i < verbs::kWcStatusCount; ++i) {
    const auto status = static_cast<WcStatus>(i);
    if (plain(explain(status).name) == wanted || plain(verbs::wc_status_name(status)) == wanted) {
      return status_card(status);
    }
  }
  if (const auto cause = find_cause(word)) return cause_card(*cause);
  if (std::string cards = refusal_cards(word); !cards.empty()) return cards;
  for (const auto find : {by_status_text, explain_async_event}) {
    if (std::string text = find(word); !text.empty()) return text;
  }
  if (std::string text = by_cause_number(wanted); !text.empty()) return text;
  if (std::string text = explain_errno(word); !text.empty()) return text;
  return explain_connection(word);
}

std::vector<std::string_view> wc_status_texts() {
  return {kStatusTexts.begin(), kStatusTexts.end()};
}

std::string known_words() {
  std::string text = "Completion statuses (number or name):\n";
  for (std::uint32_t i = 0; i < verbs::kWcStatusCount; ++i) {
    text += fmt::format("  {:>2}  {}\n", i, verbs::wc_status_name(static_cast<WcStatus>(i)));
  }
  text += "Causes (\"cause N\", \"vendor_err N\", or name):\n";
  for (std::uint32_t i = 0; i < verbs::kCauseCount; ++i) {
    text += fmt::format("  {:>2}  {}\n", i, explain(static_cast<Cause>(i)).name);
  }
  text +=
      "Refusals (name, or the call: ibv_post_send, ibv_post_recv, ibv_post_srq_recv,\n"
      "ibv_wr_complete):\n";
  for (const PostRefusal why : refusals_of("")) {
    text += fmt::format("   -  {}\n", explain(why).name);
  }
  return text + known_connection_words();
}

}  // namespace ib::softib
