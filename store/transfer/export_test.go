package transfer

// SealLength is how long the end of a backup is.
const SealLength = sealLength
