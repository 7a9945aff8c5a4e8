// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MADs of subnet administration as messages of services/gsi/gsi.h, and back.
#pragma once

#include "mad/header.h"
#include "sa/client/outgoing.h"
#include "sa/records/notice.h"
#include "sa/server/request.h"
#include "services/gsi/gsi.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ib::services {

// A request of the client.
mad::Mad sa_request(const sa::Outgoing& outgoing);
// Report(Notice), and the answer to one.
mad::Mad sa_report(const sa::Notice& notice);
mad::Mad sa_report_response(const mad::MadHeader& report, std::span<const std::byte> data);

// A message to the server. Valid as long as the message.
sa::Request sa_request_of(const GsiMessage& message);
// Tables are messages of any length, with the flag that has RMPP send them.
std::vector<std::byte> sa_response(const mad::MadHeader& request, const sa::Answer& answer);

// The attribute of a message, as far as it is there.
std::span<const std::byte> sa_data(const GsiMessage& message);

}  // namespace ib::services
