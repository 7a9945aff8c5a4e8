// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The survey as bytes and back: softibd writes them, the command reads them. The reader trusts no
// index.
#include "fabric/health/survey.h"

#include "verbs/types.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

namespace ib::fabric::health {
namespace {

constexpr std::uint32_t kFormat = 0x50435401;  // of softib and softibd of one version

struct Header {
  std::uint32_t format = kFormat;
  std::uint32_t softib_manages = 0;
  std::uint32_t has_ideal_network = 0;
  std::uint32_t reserved = 0;
};

struct TableHeader {
  std::uint32_t element = 0;
  std::uint32_t size = 0;
};

template <class T>
void append(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class List>
void append_list(std::string& bytes, const List& list) {
  append(bytes, std::uint64_t{list.size()});
  bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
}

// Takes values from the front; once there is too little, nothing is right any more.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  bool take(T& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(static_cast<void*>(&value), rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return true;
  }
  template <class List>
  bool take_list(List& list) {
    std::uint64_t size = 0;
    if (!take(size)) return false;
    return take_many(list, size);
  }
  template <class List>
  bool take_many(List& list, std::uint64_t size) {
    constexpr std::size_t kEach = sizeof list[0];
    if (size > rest_.size() / kEach) return false;
    list.resize(size);
    if (size == 0) return true;  // an empty list may have no place
    std::memcpy(static_cast<void*>(list.data()), rest_.data(), size * kEach);
    rest_.remove_prefix(size * kEach);
    return true;
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool is_part(std::uint64_t at, std::uint64_t count, std::size_t of) {
  return at <= of && count <= of - at;
}

bool fits(const Survey& survey) {
  for (const SurveyElement& each : survey.elements) {
    if (!is_part(each.first_port, each.port_count, survey.ports.size()) ||
        !is_part(each.name_at, each.name_size, survey.names.size())) {
      return false;
    }
  }
  constexpr std::uint32_t kMostLmc = 7;
  for (std::size_t i = 0; i < survey.ports.size(); ++i) {
    const SurveyPort& each = survey.ports[i];
    const bool has_peer = each.peer == kNoIndex ||
                          (each.peer < survey.ports.size() && survey.ports[each.peer].peer == i);
    if (each.element >= survey.elements.size() || !has_peer || each.lmc > kMostLmc ||
        !is_part(each.pkeys_at, each.pkey_count, survey.pkeys.size())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string Survey::place(const SurveyPort& port) const {
  return fmt::format("port {} of {}", port.number, name(element_of(port)));
}

bool Survey::carries(const SurveyPort& port) const {
  constexpr auto kActive = static_cast<std::uint8_t>(verbs::PortState::Active);
  const SurveyPort* peer = peer_of(port);
  return peer != nullptr && port.physical_state == kLinkUp && port.state == kActive &&
         peer->physical_state == kLinkUp && peer->state == kActive;
}

std::string to_bytes(const Survey& survey) {
  std::string bytes;
  Header header;
  header.softib_manages = survey.softib_manages ? 1 : 0;
  header.has_ideal_network = survey.has_ideal_network ? 1 : 0;
  append(bytes, header);
  append_list(bytes, survey.elements);
  append_list(bytes, survey.ports);
  append_list(bytes, survey.pkeys);
  append_list(bytes, survey.names);
  return bytes;
}

std::optional<Survey> survey_from(std::string_view bytes) {
  Reader reader(bytes);
  Header header;
  Survey survey;
  if (!reader.take(header) || header.format != kFormat) return std::nullopt;
  survey.softib_manages = header.softib_manages != 0;
  survey.has_ideal_network = header.has_ideal_network != 0;
  if (!reader.take_list(survey.elements) || !reader.take_list(survey.ports) ||
      !reader.take_list(survey.pkeys) || !reader.take_list(survey.names)) {
    return std::nullopt;
  }
  if (!reader.is_at_end() || !fits(survey)) return std::nullopt;
  survey.tables.resize(survey.elements.size());
  return survey;
}

void append_table(std::string& bytes, std::uint32_t element, std::span<const std::uint8_t> table) {
  append(bytes, TableHeader{element, static_cast<std::uint32_t>(table.size())});
  bytes.append(reinterpret_cast<const char*>(table.data()), table.size());
}

std::optional<std::uint32_t> take_tables(Survey& survey, std::string_view bytes) {
  Reader reader(bytes);
  std::uint32_t next = 0;
  while (!reader.is_at_end()) {
    TableHeader header;
    if (!reader.take(header) || header.element >= survey.tables.size() ||
        !reader.take_many(survey.tables[header.element], header.size)) {
      return std::nullopt;
    }
    next = header.element + 1;
  }
  return next;
}

}  // namespace ib::fabric::health
