// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of a TOML file, key by key, and the sentence that says where the file is wrong.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

// "7:3: ", as compilers print it.
inline std::string toml_place(const toml::source_region& region) {
  return fmt::format("{}:{}: ", region.begin.line, region.begin.column);
}

inline constexpr const char* kMissing = "is missing";

// The first mistake of a text that is no TOML.
inline std::string toml_fault(const toml::parse_error& error) {
  const toml::source_position at = error.source().begin;
  return toml_place({at, at, {}}) + std::string(error.description());
}

// Reads the keys of one table; the first mistake stays in `reason`.
class TomlTable {
 public:
  TomlTable(const toml::table& table, std::string where, std::string& reason)
      : table_(table), where_(std::move(where)), reason_(reason) {}

  void text(const char* key, std::string& to, bool required = false) {
    const toml::node* node = find(key, required);
    if (node == nullptr) return;
    if (const auto* value = node->as_string()) {
      to = value->get();
    } else {
      wrong(*node, key, "must be a text");
    }
  }
  template <class T>
  void number(const char* key, T& to, bool required = false,
              T most = std::numeric_limits<T>::max()) {
    const toml::node* node = find(key, required);
    if (node == nullptr) return;
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < 0 || static_cast<std::uint64_t>(value->get()) > most) {
      return wrong(*node, key, fmt::format("must be a number from 0 to {}", most));
    }
    to = static_cast<T>(value->get());
  }
  // TOML has no numbers above 2^63: such a GUID is a text, as "0xfe80000000000000".
  void guid(const char* key, std::uint64_t& to) {
    const toml::node* node = find(key, false);
    if (node != nullptr && !guid_of(*node, to)) wrong(*node, key, kBadGuid);
  }
  void guids(const char* key, std::vector<std::uint64_t>& to) {
    each(key, [&](const toml::node& item) {
      if (!guid_of(item, to.emplace_back())) wrong(item, key, kBadGuid);
    });
  }
  void numbers(const char* key, std::vector<std::uint16_t>& to, std::uint16_t most) {
    each(key, [&](const toml::node& item) {
      const auto* value = item.as_integer();
      if (value == nullptr || value->get() < 0 || value->get() > most) {
        return wrong(item, key, fmt::format("must be numbers from 0 to {}", most));
      }
      to.push_back(static_cast<std::uint16_t>(value->get()));
    });
  }
  void flag(const char* key, bool& to) {
    const toml::node* node = find(key, false);
    if (node == nullptr) return;
    if (const auto* value = node->as_boolean()) {
      to = value->get();
    } else {
      wrong(*node, key, "must be true or false");
    }
  }
  void texts(const char* key, std::vector<std::string>& to, bool required = false,
             const char* missing = kMissing) {
    const toml::node* node = find(key, required, missing);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return wrong(*node, key, "must be a list of texts");
    to.clear();
    for (const toml::node& item : *list) {
      const auto* value = item.as_string();
      if (value == nullptr) return wrong(item, key, "must be a list of texts");
      to.push_back(value->get());
    }
  }
  // A misspelt key must not be silently without effect.
  void no_others() {
    for (const auto& [key, node] : table_) {
      if (known_.contains(key.str())) continue;
      std::string known;
      for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
      wrong(key.source(), key.str(), "is not known; known are " + known);
    }
  }
  void wrong(const toml::node& node, std::string_view key, const std::string& what) {
    wrong(node.source(), key, what);
  }
  void wrong(const toml::source_region& at, std::string_view key, const std::string& what) {
    if (reason_.empty())
      reason_ = toml_place(at) + where_ + ": \"" + std::string(key) + "\" " + what;
  }
  const toml::array* tables(const char* key) {
    const toml::node* node = find(key, false);
    if (node == nullptr) return nullptr;
    const toml::array* list = node->as_array();
    if (list == nullptr || !list->is_homogeneous<toml::table>()) {
      wrong(*node, key, "must be tables: [[...]]");
      return nullptr;
    }
    return list;
  }

 private:
  static constexpr const char* kBadGuid = "must be a GUID that is not 0: 0x0002c90200001234, say";

  static bool guid_of(const toml::node& node, std::uint64_t& to) {
    if (const auto* number = node.as_integer(); number != nullptr) {
      to = static_cast<std::uint64_t>(number->get());
      return number->get() > 0;
    }
    const auto* text = node.as_string();
    if (text == nullptr || !text->get().starts_with("0x")) return false;
    const char* const end = text->get().data() + text->get().size();
    const auto [stop, error] = std::from_chars(text->get().data() + 2, end, to, 16);
    return error == std::errc{} && stop == end && to != 0;
  }
  template <class Read>
  void each(const char* key, const Read& read) {
    const toml::node* node = find(key, false);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return wrong(*node, key, "must be a list: [...]");
    for (const toml::node& item : *list) read(item);
  }
  const toml::node* find(const char* key, bool required, const char* missing = kMissing) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr && required) wrong(table_, key, missing);
    return node;
  }

  const toml::table& table_;
  std::string where_;
  std::string& reason_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace ib::softib
