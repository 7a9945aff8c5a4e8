// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Arguments of presets, and the topology that they build.
#include "fabric/addresses.h"
#include "fabric/topology/preset_parts_internal.h"
#include "fabric/topology/presets.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::fabric {
bool parse_decimal(std::string_view text, std::uint32_t& value) {
  if (text.empty() || text.size() > 10) return false;
  std::uint64_t sum = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    sum = sum * 10 + static_cast<unsigned>(c - '0');
  }
  value = static_cast<std::uint32_t>(sum);
  return sum == value;
}

PresetArguments::PresetArguments(std::string_view name, std::string_view text) : name_(name) {
  while (!text.empty()) {
    const std::string_view argument = text.substr(0, text.find(','));
    const std::size_t sign = argument.find('=');
    const bool has_key = sign != std::string_view::npos;
    const std::string_view key = has_key ? argument.substr(0, sign) : "";
    const std::string_view value = has_key ? argument.substr(sign + 1) : argument;
    if (!has_key && !arguments_.empty()) {
      fail(Status::InvalidParameter,
           fmt::format("'{}' has no key; write it as KEY=VALUE", argument));
    } else if (find(key) != nullptr) {
      fail(Status::InvalidParameter, fmt::format("'{}' is given twice; give it once", key));
    }
    arguments_.push_back({key, value});
    text.remove_prefix(std::min(text.size(), argument.size() + 1));
  }
}

PresetArguments::Argument* PresetArguments::find(std::string_view key) {
  for (Argument& argument : arguments_) {
    if (argument.key == key) return &argument;
  }
  return nullptr;
}

std::string_view PresetArguments::take_text(std::string_view key) {
  known_.push_back(key);
  Argument* argument = find(key);
  if (argument == nullptr) return {};
  argument->is_taken = true;
  if (argument->value.empty()) {
    fail(Status::InvalidParameter, fmt::format("'{}=' has no value", key));
  }
  return argument->value;
}

std::string_view PresetArguments::take_first() {
  return find("") != nullptr ? take_text("") : std::string_view{};
}

bool PresetArguments::has(std::string_view key) const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [&](const Argument& argument) { return argument.key == key; });
}

std::uint32_t PresetArguments::number(std::string_view what, std::string_view text,
                                      std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = 0;
  if (parse_decimal(text, value) && value >= least && value <= most) return value;
  fail(Status::InvalidParameter,
       fmt::format("{} is '{}'; it can be {} to {}", what, text, least, most));
  return least;
}

std::uint32_t PresetArguments::take_number(std::string_view key, std::uint32_t absent,
                                           std::uint32_t least, std::uint32_t most) {
  const std::string_view text = take_text(key);
  return text.empty() ? absent : number(key, text, least, most);
}

std::uint32_t PresetArguments::take_first_number(const char* what, std::uint32_t least,
                                                 std::uint32_t most) {
  return number(what, take_first(), least, most);
}

void PresetArguments::fail(Status status, std::string reason) {
  if (!is_good()) return;
  status_ = status;
  reason_ = std::move(reason);
}

Status PresetArguments::finish(std::string& reason) {
  for (const Argument& argument : arguments_) {
    if (argument.is_taken || !is_good()) continue;
    std::erase(known_, "");
    const std::string keys = fmt::format("{}", fmt::join(known_, ", "));
    fail(Status::InvalidParameter,
         argument.key.empty()
             ? fmt::format("'{}' has no key; keys are: {}", argument.value, keys)
             : fmt::format("it has no argument '{}'; it has: {}", argument.key, keys));
  }
  if (!is_good()) reason = fmt::format("topology {}: {}", name_, reason_);
  return status_;
}

std::uint64_t switch_guid(std::size_t index) {
  return position_guid(kFirstSwitch + index, 0, 0);
}

Status TopologyBuilder::begin(std::uint64_t hcas, std::uint64_t switches,
                              std::uint64_t switch_ports, PresetArguments& arguments) {
  if (!arguments.is_good()) return Status::InvalidParameter;
  if (hcas + switches > kMaxTopologyLids || hcas + switches * switch_ports > kMaxTopologyPorts) {
    arguments.fail(Status::LimitExceeded,
                   fmt::format("it has {} HCAs and {} switches with {} ports; a subnet has LIDs "
                               "for {} of both, and softib room for {} ports",
                               hcas, switches, switch_ports, kMaxTopologyLids, kMaxTopologyPorts));
    return Status::LimitExceeded;
  }
  hcas_ = static_cast<std::uint32_t>(hcas);
  topology_.elements.reserve(hcas + switches);
  topology_.cables.reserve(hcas + switches * switch_ports / 2);
  for (std::uint32_t i = 0; i < hcas_; ++i) {
    TopologyElement& hca = topology_.elements.emplace_back();
    hca.node_guid = hca.system_image_guid = position_guid(i, 0, 0);
    hca.description = fmt::format("node{} softib0", i);
  }
  return Status::Ok;
}

std::uint32_t TopologyBuilder::add_switch(std::string description, std::uint32_t ports) {
  const auto index = static_cast<std::uint32_t>(topology_.elements.size());
  TopologyElement& element = topology_.elements.emplace_back();
  element.kind = ElementKind::Switch;
  element.node_guid = element.system_image_guid = switch_guid(index - hcas_);
  element.description = std::move(description);
  element.ports = ports;
  return index;
}

}  // namespace ib::fabric
