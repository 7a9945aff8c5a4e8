// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Changes of an environment, and of variables that are lists.
#pragma once

#include "softib/launch/environment.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace ib::softib {

// Returns nullptr if the variable is not set.
std::string* find(Environment& environment, std::string_view name);
const std::string* find(const Environment& environment, std::string_view name);
void set(Environment& environment, std::string_view name, std::string_view value);
void unset(Environment& environment, std::string_view name);

// `rest` with `first` before it, separated by ':'.
std::string before(std::string_view first, std::string_view rest);

// The entries of `list`, separated by any of `separators`, that `keep` accepts; joined by ':'.
template <class Keep>
std::string kept(std::string_view list, std::string_view separators, const Keep& keep) {
  std::string rest;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    const std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (entry.empty() || !keep(entry)) continue;
    if (!rest.empty()) rest += ':';
    rest += entry;
  }
  return rest;
}

}  // namespace ib::softib
