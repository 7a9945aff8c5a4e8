// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/file_digest.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace ib::softib {

std::string file_digest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return fmt::format("{:016x}", digest_of(text));
}

}  // namespace ib::softib
