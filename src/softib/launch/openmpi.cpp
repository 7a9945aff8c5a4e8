// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/openmpi.h"

#include "setup/fd.h"

#include <unistd.h>

#include <algorithm>

namespace ib::softib {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace

bool sets_mca_parameter(std::string_view text, std::string_view parameter) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && trimmed(line.substr(0, equals)) == parameter) {
      return true;
    }
  }
  return false;
}

std::string mca_file_with(const Environment& environment, std::string_view parameter) {
  const auto home = std::find_if(environment.begin(), environment.end(),
                                 [](const auto& entry) { return entry.first == "HOME"; });
  if (home == environment.end() || home->second.empty()) return {};
  std::string path = home->second + "/.openmpi/mca-params.conf";
  if (::access(path.c_str(), R_OK) != 0) return {};
  return sets_mca_parameter(read_file(path, kMostBytes), parameter) ? path : std::string();
}

}  // namespace ib::softib
