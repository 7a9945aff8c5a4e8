// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/environment_edit.h"

#include <utility>

namespace ib::softib {

const std::string* find(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string* find(Environment& environment, std::string_view name) {
  return const_cast<std::string*>(find(std::as_const(environment), name));
}

void set(Environment& environment, std::string_view name, std::string_view value) {
  if (std::string* old = find(environment, name)) {
    *old = value;
  } else {
    environment.emplace_back(name, value);
  }
}

void unset(Environment& environment, std::string_view name) {
  std::erase_if(environment, [&](const auto& entry) { return entry.first == name; });
}

std::string before(std::string_view first, std::string_view rest) {
  std::string text(first);
  if (!rest.empty()) text.append(":").append(rest);
  return text;
}

}  // namespace ib::softib
