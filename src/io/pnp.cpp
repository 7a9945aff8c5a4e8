// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/pnp.h"

namespace ib::io {

const char* pnp_name(PnpMinor minor) {
  switch (minor) {
    case PnpMinor::Start: return "start";
    case PnpMinor::QueryRemove: return "query-remove";
    case PnpMinor::CancelRemove: return "cancel-remove";
    case PnpMinor::Remove: return "remove";
    case PnpMinor::SurpriseRemoval: return "surprise-removal";
    case PnpMinor::QueryDeviceRelations: return "query-device-relations";
    case PnpMinor::QueryId: return "query-id";
  }
  return "unknown";
}

const char* system_power_name(SystemPower power) {
  switch (power) {
    case SystemPower::Working: return "working";
    case SystemPower::Sleep: return "sleep";
    case SystemPower::Hibernate: return "hibernate";
    case SystemPower::Shutdown: return "shutdown";
  }
  return "unknown";
}

}  // namespace ib::io
