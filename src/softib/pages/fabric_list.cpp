// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/fabric_list.h"

#include <algorithm>
#include <filesystem>

namespace ib::softib {

std::vector<std::string> fabrics_in(const std::string& runtime_dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(runtime_dir, error)) {
    if (entry.path().extension() == ".sock") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ib::softib
