// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/last_death.h"

#include <fstream>
#include <string_view>

namespace ib::softib {
namespace {

// Of lines "2026-01-31 12:00:00.000 C crashed: SIGSEGV ...".
constexpr std::size_t kLevel = 24;
constexpr std::string_view kCrashed = "C crashed: ";
constexpr std::string_view kPrinted = "C printed: ";  // before it crashed
constexpr std::string_view kFabric = "I fabric ";     // it is up, or down

}  // namespace

std::string last_death(const std::string& log, std::size_t from) {
  std::ifstream file(log);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::size_t>(file.tellg());
  file.seekg(static_cast<std::streamoff>(from <= size ? from : 0));  // it was rotated
  std::string death;
  std::string printed;
  for (std::string line; std::getline(file, line);) {
    if (line.size() > kLevel && std::string_view(line).substr(kLevel).starts_with(kCrashed)) {
      if (!death.empty()) death += ", ";
      death += line.substr(kLevel + kCrashed.size());
    } else if (line.find(kPrinted) == kLevel) {
      printed = line.substr(kLevel + kPrinted.size());
    } else if (line.find(kFabric) == kLevel) {
      death.clear();  // a later one came up or went down
      printed.clear();
    }
  }
  if (!death.empty() && !printed.empty()) death += ", after it had printed: " + printed;
  return death;
}

}  // namespace ib::softib
