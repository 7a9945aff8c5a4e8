// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/driver_references.h"

#include <fmt/format.h>

#include <utility>

namespace ib::io {
namespace {

const char* noun(DriverUse use) {
  switch (use) {
    case DriverUse::Device: return "device";
    case DriverUse::Call: return "running call";
    case DriverUse::Callback: return "callback";
    case DriverUse::Client: return "open of the access layer";
    case DriverUse::Dependent: return "dependent driver";
  }
  return "reference";
}

}  // namespace

void DriverReferences::end_when_unused(std::function<void()> when_unused) {
  IB_ASSERT(!waiting_.load());
  when_unused_ = std::move(when_unused);
  waiting_.store(true);
  if (total_.load() == 0) when_unused_();
}

std::string DriverReferences::text() const {
  std::string text;
  for (std::size_t i = 0; i < kDriverUses; ++i) {
    const std::uint32_t n = counts_[i].load(std::memory_order_relaxed);
    if (n == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}{}", n, noun(static_cast<DriverUse>(i)), n == 1 ? "" : "s");
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace ib::io
