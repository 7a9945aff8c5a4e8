// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/partitions_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace ib::softib {

Result<sm::PartitionList> read_partitions(const std::string& path, std::string& reason) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    reason = fmt::format("cannot read the file of partitions {}: {}", path, std::strerror(errno));
    return Status::NotFound;
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  sm::TextError error;
  auto list = sm::parse_partitions(text, error);
  if (!list) reason = fmt::format("{}:{}:{}: {}", path, error.line, error.column, error.text);
  return list;
}

}  // namespace ib::softib
