// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace.h"

#include <algorithm>

namespace ib::drivers {

void Trace::add(std::string line) {
  if (line.size() > kMaxLine) line.resize(kMaxLine);
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  if (sink_) sink_(line);
  lines_.push_back(std::move(line));
  if (lines_.size() > kLines) lines_.pop_front();
  ++last_;
}

std::string Trace::text_after(std::uint64_t number) const {
  std::string text;
  const std::uint64_t first = last_ - lines_.size() + 1;
  const std::uint64_t from = std::max(first, number >= last_ ? last_ + 1 : number + 1);
  for (std::uint64_t n = from; n <= last_; ++n) {
    text += std::to_string(n) + ' ' + lines_[static_cast<std::size_t>(n - first)] + '\n';
  }
  return text;
}

}  // namespace ib::drivers
