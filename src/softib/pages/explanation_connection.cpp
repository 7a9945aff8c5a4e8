// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections: cards of the tables in cm/event_text.h, cm/reject_reason.h and
// sa/records/status_text.h.
#include "cm/event_text.h"
#include "cm/reject_reason.h"
#include "sa/records/status_text.h"
#include "softib/pages/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace ib::softib {
namespace {

using cm::NumberedText;

constexpr std::string_view kEventPrefix = "rdmacmevent";

// A table, its name in titles, and the words that stand before its numbers.
struct Vocabulary {
  std::span<const NumberedText> (*rows)();
  const char* title;
  std::array<std::string_view, 5> words;
};
constexpr std::array kVocabularies = {
    Vocabulary{cm::rdma_events, "event of librdmacm", {"event", "rdmacmevent", "cmaevent"}},
    Vocabulary{cm::reject_reasons,
               "reason of a rejection (status of RDMA_CM_EVENT_REJECTED)",
               {"reason", "rej", "reject", "rejectreason", "rejreason"}},
    Vocabulary{cm::rdma_errors,
               "errno, negative as the status of an event",
               {"errno", "error", "err", "errnumber"}},
    Vocabulary{cm::sidr_statuses,
               "status of a datagram service (SIDR_REP)",
               {"sidr", "sidrstatus", "sidrrep"}},
    Vocabulary{cm::path_statuses, "status of an alternate path (APR)", {"apr", "aprstatus"}},
};
enum Place : std::size_t { kEvents, kReasons, kErrors, kSidr };  // in the list

// The texts of the tables go on in a line of the trace; on a card they stand alone.
std::string sentence(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + '.';
}

std::string connection_card(const std::string& title, const char* meaning,
                            const std::string& check) {
  const std::string what = sentence(meaning);
  const std::string advice =
      check.starts_with("nothing") ? sentence(check) : sentence("check " + check);
  return card(title, {meaning, what.c_str(), advice.c_str()});
}

std::string card_of(const Vocabulary& vocabulary, const NumberedText& row) {
  return connection_card(fmt::format("{} {}: {}", vocabulary.title, row.number, row.text.name),
                         row.text.sentence, row.text.check);
}

std::string by_number(const Vocabulary& vocabulary, std::int64_t number) {
  for (const NumberedText& row : vocabulary.rows()) {
    if (row.number == number) return card_of(vocabulary, row);
  }
  return {};
}

std::string sa_card(const sa::StatusText& row) {
  return connection_card(
      fmt::format("status of the subnet administrator {:#06x}: {}", row.status, row.name),
      row.sentence, row.check);
}

std::string by_sa_number(std::int64_t number) {
  for (const sa::StatusText& row : sa::kStatusTexts) {
    if (row.status == number) return sa_card(row);
  }
  return {};
}

// "RDMA_CM_EVENT_REJECTED, error 8": a name, and perhaps the number at its end.
struct Wanted {
  std::string name;  // letters in lower case
  std::optional<std::int64_t> number;
};

Wanted parse(std::string_view word) {
  Wanted wanted;
  std::size_t start = word.find_last_of(" ,:=(") + 1;  // 0 if there is none
  std::string_view last = word.substr(start);
  while (last.ends_with(')') || last.ends_with('.')) last.remove_suffix(1);
  const bool is_negative = last.starts_with('-');
  if (is_negative) last.remove_prefix(1);
  if (const auto number = number_in(last)) {
    wanted.number = is_negative ? -std::int64_t{*number} : std::int64_t{*number};
    word = word.substr(0, start);
  }
  wanted.name = plain_letters(word);
  return wanted;
}

bool is_named(const NumberedText& row, std::string_view name) {
  const std::string own = plain_letters(row.text.name);
  if (own == name) return true;
  return own.starts_with(kEventPrefix) && own.substr(kEventPrefix.size()) == name;
}

// The number behind an event is its status.
std::string status_of_event(const NumberedText& event, std::int64_t status) {
  if (status < 0) return by_number(kVocabularies[kErrors], -status);
  constexpr std::int32_t kUnreachable = 7, kRejected = 8;
  if (event.number == kRejected) return by_number(kVocabularies[kReasons], status);
  if (event.number == kUnreachable) return by_number(kVocabularies[kSidr], status);
  return by_number(kVocabularies[kErrors], status);
}

// "rejectederror" and "rejected" name the same event.
std::string without_error(std::string name) {
  for (const std::string_view ending : {"error", "status"}) {
    const bool is_event = name.ends_with("addrerror") || name.ends_with("routeerror") ||
                          name.ends_with("connecterror") || name.ends_with("multicasterror");
    if (name.ends_with(ending) && name.size() > ending.size() && !is_event) {
      name.resize(name.size() - ending.size());
    }
  }
  return name;
}

std::string by_event(const Wanted& wanted) {
  std::string name = wanted.name;
  for (const std::string_view prefix : {"cmaevent", "event"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  for (const NumberedText& row : cm::rdma_events()) {
    const bool is_it = is_named(row, name) || (wanted.number && is_named(row, without_error(name)));
    if (!is_it) continue;
    std::string text = card_of(kVocabularies[kEvents], row);
    if (wanted.number) text += status_of_event(row, *wanted.number);
    return text;
  }
  return {};
}

std::string by_kind_and_number(const Wanted& wanted) {
  if (wanted.name.empty()) {  // a bare number that is no completion status
    if (*wanted.number < 0) return by_number(kVocabularies[kErrors], -*wanted.number);
    const std::string reason = by_number(kVocabularies[kReasons], *wanted.number);
    return reason.empty() ? by_number(kVocabularies[kErrors], *wanted.number) : reason;
  }
  for (const Vocabulary& vocabulary : kVocabularies) {
    const auto& words = vocabulary.words;
    if (std::find(words.begin(), words.end(), wanted.name) == words.end()) continue;
    return by_number(vocabulary, std::abs(*wanted.number));
  }
  for (const std::string_view name : {"sa", "sastatus", "mad", "madstatus"}) {
    if (wanted.name == name) return by_sa_number(*wanted.number);
  }
  return {};
}

}  // namespace

std::string explain_connection(std::string_view word) {
  const Wanted wanted = parse(word);
  if (wanted.number) {
    if (std::string text = by_kind_and_number(wanted); !text.empty()) return text;
  }
  if (std::string text = by_event(wanted); !text.empty()) return text;
  if (wanted.number) return {};
  for (const Vocabulary& vocabulary : kVocabularies) {
    for (const NumberedText& row : vocabulary.rows()) {
      if (is_named(row, wanted.name)) return card_of(vocabulary, row);
    }
  }
  for (const sa::StatusText& row : sa::kStatusTexts) {
    if (plain_letters(row.name) == wanted.name) return sa_card(row);
  }
  return {};
}

std::string known_connection_words() {
  std::string text;
  for (const Vocabulary& vocabulary : kVocabularies) {
    text += fmt::format("{} (\"{} N\", or name):\n", vocabulary.title, vocabulary.words[0]);
    for (const NumberedText& row : vocabulary.rows()) {
      text += fmt::format("  {:>5}  {}\n", row.number, row.text.name);
    }
  }
  text += "Statuses of the subnet administrator (\"SA status N\", or name):\n";
  for (const sa::StatusText& row : sa::kStatusTexts) {
    text += fmt::format("  {:#06x}  {}\n", row.status, row.name);
  }
  return text;
}

}  // namespace ib::softib
