// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/live_picture.h"

#include "fabric/picture/looks_internal.h"
#include "softib/picture/page.h"
#include "softib/picture/subnet_reading.h"

#include <utility>

namespace ib::softib {

void LivePicture::refresh() {
  fabric::ShownSubnet next = read_();
  warn_of_new_errors(next);
  const std::uint64_t structure = structure_of(next);
  const bool is_new = layout_ == 0 || structure != structure_;
  if (is_new) {
    fabric::Picture picture = make_picture(next, true);
    lay_out_(picture);
    picture_ = std::move(picture);
    structure_ = structure;
    ++layout_;
  } else {
    fabric::refresh(picture_, next);
  }
  ++version_;
  elements_.resize(next.elements.size());
  for (std::size_t i = 0; i < next.elements.size(); ++i) {
    if (is_new || !(next.elements[i] == subnet_.elements[i])) elements_[i] = version_;
  }
  subnet_ = std::move(next);
  boxes_.resize(picture_.boxes.size());
  lines_.resize(picture_.lines.size());
  for (std::size_t i = 0; i < boxes_.size(); ++i) stamp(boxes_, i, box_state(picture_.boxes[i]));
  for (std::size_t i = 0; i < lines_.size(); ++i) stamp(lines_, i, line_state(picture_.lines[i]));
}

// Those that are there at the first look are old.
void LivePicture::warn_of_new_errors(fabric::ShownSubnet& next) {
  const Instant now = now_();
  decltype(errors_) errors;
  for (fabric::ShownElement& element : next.elements) {
    for (fabric::ShownPort& port : element.ports) {
      port.has_errors = false;
      if (port.errors == 0) continue;
      const std::pair key(element.guid, port.number);
      const auto before = errors_.find(key);
      Errors known = before == errors_.end() ? Errors{} : before->second;
      // Fewer: they were cleared, and these have come since.
      if (version_ != 0 && port.errors != known.count) known.grown = now;
      known.count = port.errors;
      port.has_errors = known.grown && now - *known.grown < kErrorsAreNew;
      errors.emplace(key, known);
    }
  }
  errors_ = std::move(errors);
}

void LivePicture::stamp(std::vector<Stamped>& all, std::size_t number, Json value) {
  if (all[number].value == value) return;
  all[number] = {std::move(value), version_};
}

std::string LivePicture::page(const std::string& nonce) const {
  return page_of(picture_, page_state(picture_, subnet_), {title_, nonce, layout_, version_});
}

std::string LivePicture::changes_since(std::uint64_t version) const {
  Json json = {{"layout", layout_},
               {"version", version_},
               {"summary", picture_.summary},
               {"hottest", hottest_text(picture_)}};
  const auto changed = [version](const std::vector<Stamped>& all) {
    Json some = Json::object();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].version > version) some[std::to_string(i)] = all[i].value;
    }
    return some;
  };
  json["boxes"] = changed(boxes_);
  json["lines"] = changed(lines_);
  Json elements = Json::object();
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    if (elements_[i] > version) elements[std::to_string(i)] = element_state(subnet_.elements[i]);
  }
  json["elements"] = std::move(elements);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace ib::softib
