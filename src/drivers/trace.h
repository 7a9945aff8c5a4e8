// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Trace: the last lines about what went wrong or changed, numbered, for `softib trace` and
// `softib explain`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace ib::drivers {

class Trace {
 public:
  static constexpr std::size_t kLines = 4096;
  static constexpr std::size_t kMaxLine = 1024;  // longer ones are cut

  explicit Trace(std::function<void(std::string_view)> sink = {}) : sink_(std::move(sink)) {}

  // Control characters (a program's name may have any) become '?': one line stays one line.
  void add(std::string line);
  // Lines with a greater number: "<number> <text>\n" each. If some are lost, the numbers show it.
  std::string text_after(std::uint64_t number) const;
  std::uint64_t last() const { return last_; }

 private:
  std::function<void(std::string_view)> sink_;
  std::deque<std::string> lines_;  // the newest has the number last_
  std::uint64_t last_ = 0;
};

}  // namespace ib::drivers
