// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A picture that follows a running fabric: its layout is computed once, and again when elements,
// cables or the route change; all else is what changed since a version that a page has. It warns of
// ports whose errors go on: there were new ones within kErrorsAreNew.
#pragma once

#include "fabric/picture/picture.h"
#include "fabric/picture/shown_subnet.h"
#include "softib/pages/fabric_state.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ib::softib {

inline constexpr std::chrono::seconds kErrorsAreNew{10};  // as the legend says

// Thread rule: one thread.
class LivePicture {
 public:
  using Read = std::function<fabric::ShownSubnet()>;
  using LayOut = std::function<void(fabric::Picture&)>;
  using Instant = std::chrono::steady_clock::time_point;
  using Now = std::function<Instant()>;
  LivePicture(std::string title, Read read, LayOut lay_out,
              Now now = std::chrono::steady_clock::now)
      : title_(std::move(title)),
        read_(std::move(read)),
        lay_out_(std::move(lay_out)),
        now_(std::move(now)) {}

  // Reads the subnet. An exception of reading passes through, and the picture stays as it was.
  void refresh();
  std::string page(const std::string& nonce) const;
  // Of JSON: the layout, the version, and the boxes, lines and elements that have changed since
  // `version`, by their numbers.
  std::string changes_since(std::uint64_t version) const;

 private:
  // Something that a page shows, and the version in which it came to be so.
  struct Stamped {
    Json value;
    std::uint64_t version = 0;
  };
  void stamp(std::vector<Stamped>& all, std::size_t number, Json value);
  void warn_of_new_errors(fabric::ShownSubnet& next);

  std::string title_;
  Read read_;
  LayOut lay_out_;
  Now now_;
  fabric::ShownSubnet subnet_;
  fabric::Picture picture_;
  std::uint64_t structure_ = 0;
  std::uint64_t layout_ = 0;   // 0: none
  std::uint64_t version_ = 0;  // grows with each refresh
  std::vector<Stamped> boxes_, lines_;
  std::vector<std::uint64_t> elements_;  // versions
  struct Errors {
    std::uint64_t count = 0;
    std::optional<Instant> grown;  // when there were more than before
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, Errors> errors_;  // by GUID and port
};

}  // namespace ib::softib
