// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A picture that follows a running fabric: its layout is computed once, and again when elements,
// cables or the route change; all else is what changed since a version that a page has.
#pragma once

#include "fabric/picture/picture.h"
#include "fabric/picture/shown_subnet.h"
#include "softib/pages/fabric_state.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ib::softib {

// Thread rule: one thread.
class LivePicture {
 public:
  using Read = std::function<fabric::ShownSubnet()>;
  using LayOut = std::function<void(fabric::Picture&)>;
  LivePicture(std::string title, Read read, LayOut lay_out)
      : title_(std::move(title)), read_(std::move(read)), lay_out_(std::move(lay_out)) {}

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

  std::string title_;
  Read read_;
  LayOut lay_out_;
  fabric::ShownSubnet subnet_;
  fabric::Picture picture_;
  std::uint64_t structure_ = 0;
  std::uint64_t layout_ = 0;   // 0: none
  std::uint64_t version_ = 0;  // grows with each refresh
  std::vector<Stamped> boxes_, lines_;
  std::vector<std::uint64_t> elements_;  // versions
};

}  // namespace ib::softib
